#!/bin/sh
# Generates the Go stubs into memplanev1/ from the .proto files.
#
# Needs protoc-gen-go and protoc-gen-go-grpc on the PATH (README.md), and protoc with Google's common protos:
#   PROTOC     the compiler                                           [protoc]
#   INCLUDES   flags that lead to google/rpc and google/longrunning   [none]
#   PROTO_DIR  MemPlane's .proto files                                [../../proto]
set -eu
cd "$(dirname "$0")"
proto_dir="${PROTO_DIR:-../../proto}"
module=memplane.example/client
files=$(cd "$proto_dir" && echo memplane/v1/*.proto)

options="module=$module"
for file in $files; do
	options="$options,M$file=$module/memplanev1"
done
# Unquoted on purpose: PROTOC and INCLUDES hold several words.
${PROTOC:-protoc} -I"$proto_dir" ${INCLUDES:-} \
	--go_out=. --go_opt="$options" --go-grpc_out=. --go-grpc_opt="$options" $files
