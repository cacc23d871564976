// Exports the API's public interface: create an API with a catalogue, listen, and close it.

// Configuration
export { API_RULES, API_SETTINGS, type ApiConfig, type ApiSettings, apiConfig } from '@bullpen/config'
export type { PayloadCodec } from '@bullpen/engine'
export { type Api, type ApiOptions, createApi } from './create-api.ts'
export type { Addresses } from './listen.ts'
export { runUntilSignalled } from './run-until-signalled.ts'
