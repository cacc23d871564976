// The setting of every process that writes a log.
import { LOG_LEVELS } from '@bullpen/contract/internal'
import { z } from 'zod'
import type { SettingsTable } from './settings.ts'

export const LOG_SETTINGS = {
  logLevel: {
    env: 'BULLPEN_LOG_LEVEL',
    schema: z.enum(LOG_LEVELS).default('info'),
    expected: `one of ${LOG_LEVELS.join(', ')}`,
    help: 'The minimum level of the log lines that are written.',
  },
} as const satisfies SettingsTable
