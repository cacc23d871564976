// The settings that every process with a Redis connection has.

import { z } from 'zod'
import type { SettingsTable } from './settings.ts'

export const REDIS_SETTINGS = {
  redisUrl: {
    env: 'REDIS_URL',
    schema: z
      .url({ protocol: /^rediss?$/, error: 'it is a URL like redis://127.0.0.1:6379' })
      .default('redis://127.0.0.1:6379'),
    help: 'The Redis or Valkey server that holds the queues.',
  },
  namespace: {
    env: 'BULLPEN_NAMESPACE',
    schema: z
      .string()
      .regex(
        /^[a-z][a-z0-9-]{0,39}$/,
        'it is lower-case letters, digits and dashes, starting with a letter, at most 40',
      )
      .default('bullpen'),
    help: 'Prefix of every key in Redis; processes that share tasks share it.',
  },
} as const satisfies SettingsTable
