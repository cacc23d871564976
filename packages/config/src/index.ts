// The settings of Bullpen's programs, and the functions that read them from flags, the environment, a file and defaults.
export { API_RULES, API_SETTINGS, type ApiConfig, type ApiSettings, DEV_KEY_NAME, EVERY_KEY } from './api-settings.ts'
export { helpOf } from './help.ts'
export { LOG_SETTINGS } from './log-settings.ts'
export { type NamedKey, readNamedKey } from './named-key.ts'
export { settingsOfPool } from './pool-settings.ts'
export { apiConfig, workerConfig } from './process-settings.ts'
export { REDIS_SETTINGS, redisUrlOf } from './redis-settings.ts'
export { durationOr, durationOrNone, trueOrFalse, wholeNumber, wholeNumberOr } from './setting-types.ts'
export {
  checkSettings,
  flagOf,
  originOf,
  type PartialSettings,
  readSettings,
  type Setting,
  type SettingsOf,
  type SettingsRule,
  type SettingsSources,
  type SettingsTable,
} from './settings.ts'
export { CLOSING_MS, WORKER_RULES, WORKER_SETTINGS, type WorkerConfig, type WorkerSettings } from './worker-settings.ts'
