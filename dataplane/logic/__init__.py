"""Pure decisions: functions of (inputs, policy, now). No socket, clock, randomness or log."""
