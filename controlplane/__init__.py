"""The control plane: holds the policy, checks it, signs it and hands it to data planes."""
