// Tells why a connection to Redis fails because of TLS: its certificate, the client's certificate, or TLS on only one of the two sides.

/**
 * - `untrusted_certificate`: none of the CAs that the client trusts has signed the server's certificate
 * - `expired_certificate`: the server's certificate has expired, or is not valid yet
 * - `wrong_host`: the server's certificate is for other host names
 * - `client_certificate`: the server demands a client certificate, or refuses the one that it was sent
 * - `no_tls`: the client uses TLS, and the server does not
 * - `requires_tls`: the server uses TLS, and the client does not
 */
export type TlsTrouble =
  | 'untrusted_certificate'
  | 'expired_certificate'
  | 'wrong_host'
  | 'client_certificate'
  | 'no_tls'
  | 'requires_tls'

/** What is wrong, as the end of a sentence that begins with "Redis", and what to do. */
const REASONS: Readonly<Record<TlsTrouble, readonly [reason: string, advice: string]>> = {
  untrusted_certificate: [
    'has a certificate that is not trusted',
    'set BULLPEN_REDIS_CA_FILE, or ca in the URL, to a file with the certificate of the CA that has signed it',
  ],
  expired_certificate: ['has a certificate that has expired or is not valid yet', 'renew it, and check the clocks'],
  wrong_host: [
    'has a certificate for another host name',
    'use a host name from the certificate in the URL, or add this one to the certificate',
  ],
  client_certificate: [
    'closes the TLS connection before it replies, as if it required a client certificate or refused this one',
    'set BULLPEN_REDIS_CERT_FILE and BULLPEN_REDIS_KEY_FILE, or cert and key in the URL, to a certificate that Redis accepts and its key',
  ],
  no_tls: [
    'does not complete a TLS handshake, as if its port did not use TLS',
    'check the port, or use redis:// instead of rediss://',
  ],
  requires_tls: [
    'closes the connection before it replies, as if its port required TLS',
    'check the port, or use rediss:// instead of redis://',
  ],
}

export const TLS_TROUBLES = {
  lines: Object.fromEntries(
    Object.entries(REASONS).map(([trouble, [reason]]) => [
      trouble,
      { first: `redis ${reason}`, still: `redis still ${reason}` },
    ]),
  ) as Record<TlsTrouble, { readonly first: string; readonly still: string }>,
  text: (address: string, trouble: TlsTrouble): string => {
    const [reason, advice] = REASONS[trouble]
    return `Redis at ${address} ${reason}; ${advice}`
  },
}

/** Returns undefined if the error is not one of TLS. */
export function tlsTroubleOf(error: Error): TlsTrouble | undefined {
  const code = 'code' in error ? String(error.code) : ''
  if (EXPIRED.has(code)) return 'expired_certificate'
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return 'wrong_host'
  if (UNTRUSTED.test(code)) return 'untrusted_certificate'
  if (CLIENT_CERTIFICATE.test(code)) return 'client_certificate'
  if (error.message.startsWith(TLS_ALERT)) return 'requires_tls'
  return NO_TLS.test(error.message) ? 'no_tls' : undefined
}

/**
 * Returns what an attempt to connect that has failed says about TLS, if no connection has ever been usable. `isOpen` says whether the
 * connection, and with TLS the handshake, succeeded before it was closed.
 */
export function tlsMismatch(usesTls: boolean, isOpen: boolean, error?: unknown): TlsTrouble | undefined {
  const { code, message }: { readonly code?: unknown; readonly message?: string } = error instanceof Error ? error : {}
  // The server has not closed a connection that has timed out.
  if (isOpen && code !== 'ETIMEDOUT') return usesTls ? 'client_certificate' : 'requires_tls'
  return usesTls && message === 'connect ETIMEDOUT' ? 'no_tls' : undefined
}

/** What ioredis says if a reply begins with the type of a TLS alert, with which some servers end a connection without TLS. */
const TLS_ALERT = 'Unknown RESP type 21 '
/** The alerts by which a server refuses a client's certificate, or none. */
const CLIENT_CERTIFICATE = /^ERR_SSL_.*ALERT_.*(CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE|ACCESS_DENIED)/
/** What OpenSSL says of bytes that are not TLS. If Node notices them while it writes, the code of the error is only EPROTO. */
const NO_TLS = /:wrong version number:|:packet length too long:|before secure TLS connection/
const EXPIRED: ReadonlySet<string> = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID'])
/** The codes of X.509 verification: https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const UNTRUSTED =
  /^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|CERT_|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_|HOSTNAME_MISMATCH)/
