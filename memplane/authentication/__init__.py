"""Who calls: API keys, signed tokens (JWT) and client certificates, for both planes."""
