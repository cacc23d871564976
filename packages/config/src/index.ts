// The settings of Bullpen's programs, and how they are read from flags, environment, file and defaults.
export { API_RULES, API_SETTINGS, type ApiConfig, type ApiSettings } from './api-settings.ts'
export { LOG_SETTINGS } from './log-settings.ts'
export { REDIS_SETTINGS } from './redis-settings.ts'
export {
  checkSettings,
  flagOf,
  type PartialSettings,
  readSettings,
  type Setting,
  type SettingsOf,
  type SettingsRule,
  type SettingsSources,
  type SettingsTable,
  wholeNumber,
} from './settings.ts'
export { CLOSING_MS, WORKER_RULES, WORKER_SETTINGS, type WorkerConfig, type WorkerSettings } from './worker-settings.ts'
