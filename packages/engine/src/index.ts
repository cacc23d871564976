// The engine's public surface.
export type { Broker, Clock, EventSink, ListQuery, NewTask, Page, Random, TakenTask } from './ports.ts'
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
} from './settings.ts'
