// The settings of every process that connects to Redis.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { REDIS_URLS, readRedisUrl, withTlsFiles } from '@bullpen/contract/internal'
import { z } from 'zod'
import type { SettingsOf, SettingsRule, SettingsTable } from './settings.ts'

const pemFile = { schema: z.string().min(1).optional(), expected: 'the path of a PEM file' }

export const REDIS_SETTINGS = {
  redisUrl: {
    env: 'REDIS_URL',
    schema: z
      .string()
      .refine((url) => readRedisUrl(url).kind !== 'invalid')
      .default('redis://127.0.0.1:6379'),
    expected: (given) => {
      const address = typeof given === 'string' ? readRedisUrl(given) : undefined
      return address?.kind === 'invalid' ? `${REDIS_URLS}; ${address.fault}` : REDIS_URLS
    },
    // The URL may contain a password.
    secret: true,
    help: 'The URL of the Redis or Valkey server that stores the queues, or of the nodes of a Redis Cluster.',
  },
  redisCaFile: {
    env: 'BULLPEN_REDIS_CA_FILE',
    ...pemFile,
    help: 'A file with the CA certificates against which the certificate of Redis is checked, instead of those that Node trusts.',
  },
  redisCertFile: {
    env: 'BULLPEN_REDIS_CERT_FILE',
    ...pemFile,
    help: 'A file with the client certificate, for a Redis that requires one.',
  },
  redisKeyFile: {
    env: 'BULLPEN_REDIS_KEY_FILE',
    ...pemFile,
    help: 'A file with the private key of the client certificate.',
  },
  namespace: {
    env: 'BULLPEN_NAMESPACE',
    schema: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,39}$/)
      .default('bullpen'),
    expected: '1 to 40 lower-case letters, digits and dashes, starting with a letter',
    help: 'The prefix of every key in Redis. Processes that share tasks must use the same namespace.',
  },
} as const satisfies SettingsTable

type RedisSettings = SettingsOf<typeof REDIS_SETTINGS>

/** Returns the URL of Redis with the files of the other settings as its options. */
export function redisUrlOf(settings: Omit<RedisSettings, 'namespace'>): string {
  const { redisUrl, redisCaFile: ca, redisCertFile: cert, redisKeyFile: key } = settings
  return withTlsFiles(redisUrl, { ca, cert, key })
}

const TLS_SETTINGS =
  'redisCaFile (BULLPEN_REDIS_CA_FILE), redisCertFile (BULLPEN_REDIS_CERT_FILE) and redisKeyFile (BULLPEN_REDIS_KEY_FILE)'

/** The files are also read, because a wrong one would otherwise be found only when Redis is connected to. */
export const REDIS_RULES: readonly SettingsRule<typeof REDIS_SETTINGS>[] = [
  (settings) => {
    const address = readRedisUrl(redisUrlOf(settings))
    if (address.kind === 'invalid') {
      return `${TLS_SETTINGS} cannot be combined with redisUrl (REDIS_URL), to which they are added as ca, cert and key: ${address.fault}`
    }
    try {
      const { ca, cert, key } = address.tls ?? {}
      createSecureContext({ ca: readCertificates(ca), cert: read(cert), key: read(key) })
      return undefined
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      return `the files for TLS with Redis cannot be used (${TLS_SETTINGS}, or ca, cert and key in redisUrl): ${why}`
    }
  },
]

function read(path: string | undefined): Buffer | undefined {
  return path === undefined ? undefined : readFileSync(path)
}

/** Node ignores what is not a certificate, and would trust no CA. */
function readCertificates(path: string | undefined): Buffer | undefined {
  const content = read(path)
  const certificates = content
    ?.toString('latin1')
    .match(/-----BEGIN [A-Z\d ]*CERTIFICATE-----[^-]*(?:-----END [A-Z\d ]+-----)?/g)
  if (content !== undefined && certificates === null) throw new Error(`${path} contains no certificate in PEM form`)
  for (const each of certificates ?? []) {
    try {
      new X509Certificate(each)
    } catch (cause) {
      throw new Error(`${path} contains a damaged certificate`, { cause })
    }
  }
  return content
}
