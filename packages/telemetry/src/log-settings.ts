// The setting that every process with a log has.
import type { SettingsTable } from '@bullpen/engine'
import { z } from 'zod'
import { LOG_LEVELS } from './log.ts'

export const LOG_SETTINGS = {
  logLevel: {
    env: 'BULLPEN_LOG_LEVEL',
    schema: z.enum(LOG_LEVELS).default('info'),
    help: 'The least serious log line that is written.',
  },
} as const satisfies SettingsTable
