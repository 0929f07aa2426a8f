"""The data plane: writes, finds, ranks, ages and forgets memories as the policy in force says."""
