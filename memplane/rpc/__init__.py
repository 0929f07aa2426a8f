"""What every gRPC server and client of MemPlane shares."""
