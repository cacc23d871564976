// The API's public surface: create it with a catalogue, listen, close.

// Configuration
export { API_RULES, API_SETTINGS, type ApiConfig, type ApiSettings, apiConfig } from '@bullpen/config'
export { type Api, type ApiOptions, createApi } from './create-api.ts'
export type { Addresses } from './listen.ts'
export { runUntilSignalled } from './run-until-signalled.ts'
