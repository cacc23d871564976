// The settings of every process that connects to Redis.
import { REDIS_URLS, readRedisUrl } from '@bullpen/contract/internal'
import { z } from 'zod'
import type { SettingsTable } from './settings.ts'

export const REDIS_SETTINGS = {
  redisUrl: {
    env: 'REDIS_URL',
    schema: z
      .string()
      .refine((url) => readRedisUrl(url) !== undefined)
      .default('redis://127.0.0.1:6379'),
    expected: REDIS_URLS,
    // The URL may contain a password.
    secret: true,
    help: 'The URL of the Redis or Valkey server that stores the queues, or of the nodes of a Redis Cluster.',
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
