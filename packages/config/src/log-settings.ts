// The setting that every process with a log has.

import { LOG_LEVELS } from '@bullpen/contract/internal'
import { z } from 'zod'
import type { SettingsTable } from './settings.ts'

export const LOG_SETTINGS = {
  logLevel: {
    env: 'BULLPEN_LOG_LEVEL',
    schema: z.enum(LOG_LEVELS).default('info'),
    help: 'The least serious log line that is written.',
  },
} as const satisfies SettingsTable
