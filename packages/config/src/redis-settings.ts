// The settings of every process that connects to Redis.
import { REDIS_URLS, readRedisUrl, withTlsFiles } from '@bullpen/contract/internal'
import { faultOfTlsFiles } from '@bullpen/contract/node'
import { z } from 'zod'
import { durationOr } from './setting-types.ts'
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
  replicationTimeout: {
    env: 'BULLPEN_REPLICATION_TIMEOUT',
    ...durationOr('1s', '10ms'),
    help: "How long an enqueue with `durability: 'replicated'` waits until a replica of Redis has the task. After that, it fails with `not_replicated`. See [How much a failover may lose](../how-to/redis-settings.md#how-much-a-failover-may-lose).",
  },
} as const satisfies SettingsTable

type RedisSettings = SettingsOf<typeof REDIS_SETTINGS>

/** Returns the URL of Redis with the files of the other settings as its options. */
export function redisUrlOf(settings: Omit<RedisSettings, 'namespace' | 'replicationTimeout'>): string {
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
    const fault = address.tls && faultOfTlsFiles(address.tls)
    return fault && `${fault}; ${TLS_SETTINGS} also set these files`
  },
]
