// Writes one memory and finds it again. Everything it knows of MemPlane comes from the .proto files.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"fmt"
	"log"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "memplane.example/client/memplanev1"
)

// Tries UNAVAILABLE, RESOURCE_EXHAUSTED and the server's CANCELLED again; a pause that the server asks for
// (grpc-retry-pushback-ms) wins over the backoff. Calls are spread over all addresses of the target, such as
// dns:///memplane.internal:7701.
//
//go:embed service_config.json
var serviceConfig string

const namespace = "dept.sales.go_client"

// apiKey sends the key with every call. Without TLS it travels as it is: use it on a trusted network only.
type apiKey string

func (key apiKey) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(key)}, nil
}

func (apiKey) RequireTransportSecurity() bool { return false }

func main() {
	log.SetFlags(0)
	target := os.Getenv("MEMPLANE_TARGET")
	if target == "" {
		target = "127.0.0.1:7701"
	}
	transport, err := transportCredentials()
	if err != nil {
		log.Fatalf("TLS: %v", err)
	}
	connection, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(transport),
		grpc.WithPerRPCCredentials(apiKey(os.Getenv("MEMPLANE_API_KEY"))),
		grpc.WithDefaultServiceConfig(serviceConfig))
	if err != nil {
		log.Fatalf("target %s: %v", target, err)
	}
	defer connection.Close()
	if err := writeAndSearch(context.Background(), pb.NewMemoryServiceClient(connection)); err != nil {
		log.Fatal(explain(err))
	}
}

// transportCredentials are TLS where MEMPLANE_TLS_CA names the authorities. The own certificate is read at each
// handshake, so that a new one is used without a restart; the planes renew connections every five minutes.
func transportCredentials() (credentials.TransportCredentials, error) {
	authorities := os.Getenv("MEMPLANE_TLS_CA")
	if authorities == "" {
		return insecure.NewCredentials(), nil
	}
	pem, err := os.ReadFile(authorities)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", authorities)
	}
	config := &tls.Config{RootCAs: trusted, ServerName: os.Getenv("MEMPLANE_TLS_SERVER_NAME")}
	if certificate := os.Getenv("MEMPLANE_TLS_CERT"); certificate != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(certificate, os.Getenv("MEMPLANE_TLS_KEY"))
			return &pair, err
		}
	}
	return credentials.NewTLS(config), nil
}

func writeAndSearch(ctx context.Context, client pb.MemoryServiceClient) error {
	written, err := client.WriteMemory(ctx, &pb.WriteMemoryRequest{
		Namespace: namespace,
		Content:   "Remember: Acme renews its service contract every March.",
		Source:    &pb.Source{Type: pb.SourceType_SOURCE_TYPE_USER},
		// The same id makes a retry safe: it returns the first answer.
		RequestId: fmt.Sprintf("go-example-%d", time.Now().UnixNano()),
	})
	if err != nil {
		return err
	}
	fmt.Println("wrote", written.GetMemory().GetId(), written.GetDecision().GetAction())

	found, err := client.SearchMemories(ctx, &pb.SearchMemoriesRequest{
		Namespace: namespace,
		Query:     "When does Acme renew?",
		// The answer includes the write above, whatever the indexes have seen.
		AtLeastAsFresh: written.GetConsistencyToken(),
	})
	if err != nil {
		return err
	}
	for _, hit := range found.GetHits() {
		fmt.Printf("%d. %.3f %s\n", hit.GetRank(), hit.GetScore(), hit.GetMemory().GetContent())
	}
	for _, each := range found.GetDegraded() {
		fmt.Println("degraded:", each.GetBackend(), each.GetFallback())
	}
	return nil
}

// explain names the reason and the fields at fault, from the details of the status.
func explain(err error) string {
	failed := status.Convert(err)
	text := fmt.Sprintf("%s: %s", failed.Code(), failed.Message())
	for _, detail := range failed.Details() {
		switch found := detail.(type) {
		case *errdetails.ErrorInfo:
			text += " [" + found.GetReason() + "]"
		case *errdetails.BadRequest:
			for _, violation := range found.GetFieldViolations() {
				text += "\n  " + violation.GetField() + ": " + violation.GetDescription()
			}
		}
	}
	return text
}
