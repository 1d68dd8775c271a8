/* Fetches /page over TLS from the host:port given, and prints its length and a hash. */
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <stdio.h>

int main(int count, char **words)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	BIO *bio = BIO_new_ssl_connect(context);
	SSL *ssl;
	char part[4096];
	int n;
	long sum = 0, hash = count;
	BIO_get_ssl(bio, &ssl);
	SSL_set_verify(ssl, SSL_VERIFY_NONE, 0);
	BIO_set_conn_hostname(bio, words[1]);
	if (BIO_do_connect(bio) <= 0) {
		puts("no connection");
		return 1;
	}
	BIO_puts(bio, "GET /page HTTP/1.0\r\n\r\n");
	while ((n = BIO_read(bio, part, sizeof part)) > 0) {
		sum += n;
		for (int i = 0; i < n; i++)
			hash = hash * 31 + part[i];
	}
	printf("%s %ld %ld\n", SSL_get_version(ssl), sum, hash);
	BIO_free_all(bio);
	SSL_CTX_free(context);
	return 0;
}
