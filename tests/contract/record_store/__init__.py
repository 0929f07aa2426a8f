"""The contract of `ports.RecordStore`, held by every adapter."""
