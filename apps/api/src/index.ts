// The API's public surface: create it with a catalogue, listen, close.
export { type Addresses, type Api, type ApiOptions, createApi } from './create-api.ts'
export { runUntilSignalled } from './run-until-signalled.ts'
// Configuration
export { API_RULES, API_SETTINGS, type ApiConfig, type ApiSettings } from './settings.ts'
