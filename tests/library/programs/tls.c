/* Fetches /page over TLS from the host:port given, and prints its length and a hash. */
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>

static int peer_of;
/* Who is at the other end, in several ways. */
static void peer(SSL *ssl)
{
	X509 *one = SSL_get1_peer_certificate(ssl);
	X509_NAME *name = X509_get_subject_name(one);
	ASN1_STRING *text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, 0));
	BIO *memory = BIO_new(BIO_s_mem());
	unsigned char hash[EVP_MAX_MD_SIZE], *copy;
	unsigned size;
	char *shown;
	printf("%.*s, %d bits, ", ASN1_STRING_length(text), (const char *)ASN1_STRING_get0_data(text), EVP_PKEY_get_bits(X509_get0_pubkey(one)));
	X509_NAME_print_ex(memory, name, 0, XN_FLAG_ONELINE);
	int n = (int)BIO_get_mem_data(memory, &shown);
	printf("%.*s, ", n, shown);
	X509_digest(one, EVP_sha256(), hash, &size);
	n = ASN1_STRING_to_UTF8(&copy, text);
	printf("%u %02x%02x %d %s\n", size, hash[0], hash[31], n, SSL_get_cipher_name(ssl));
	OPENSSL_free(copy);
	printf("mine %d, %s\n", SSL_get_ex_data(ssl, 0) == &peer_of, ERR_reason_error_string(ERR_peek_last_error()) ? "error" : "none");
	BIO_free(memory);
	X509_free(one);
}

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
	SSL_set_ex_data(ssl, 0, &peer_of);
	peer(ssl);
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
