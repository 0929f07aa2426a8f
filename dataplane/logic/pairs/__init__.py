"""Whether two memories say the same, contradict each other, or neither: slots, features of a pair, a trained model."""
