// The API's settings: what each is called, what it may be, and which of them contradict each other.

import { z } from 'zod'
import { LOG_SETTINGS } from './log-settings.ts'
import { REDIS_SETTINGS } from './redis-settings.ts'
import {
  type PartialSettings,
  type SettingsOf,
  type SettingsRule,
  type SettingsTable,
  wholeNumber,
} from './settings.ts'

/** A key stands in a header, in a link and in a comma-separated list: RFC 6750's characters, and none of them a comma. */
const keySchema = z
  .string()
  .min(20, 'a key has at least 20 characters')
  .regex(/^[A-Za-z0-9._~+/=-]+$/, 'a key is made of letters, digits and . _ ~ + / = -')

const keysSchema = z.preprocess(
  (given) =>
    typeof given === 'string'
      ? given
          .split(',')
          .map((key) => key.trim())
          .filter((key) => key !== '')
      : given,
  z.array(keySchema).default([]),
)

const portSchema = wholeNumber(0, 65_535)
const hostSchema = z.string().min(1)

export const API_SETTINGS = {
  ...REDIS_SETTINGS,
  ...LOG_SETTINGS,
  environment: {
    env: 'BULLPEN_ENV',
    schema: z.enum(['development', 'production']).default('production'),
    help: 'In development a key is made that opens the API from this machine alone; in production there must be keys.',
  },
  host: {
    env: 'BULLPEN_API_HOST',
    schema: hostSchema.default('127.0.0.1'),
    help: 'The address that the API listens on; 0.0.0.0 in a container.',
  },
  port: {
    env: 'BULLPEN_API_PORT',
    schema: portSchema.default(8080),
    help: 'The port that the API listens on; 0 takes a free one.',
  },
  metricsHost: {
    env: 'BULLPEN_API_METRICS_HOST',
    schema: hostSchema.default('127.0.0.1'),
    help: 'The address that the metrics listen on. They need no key: keep this one inside the cluster.',
  },
  metricsPort: {
    env: 'BULLPEN_API_METRICS_PORT',
    schema: portSchema.default(9464),
    help: 'The port that the metrics listen on; 0 takes a free one.',
  },
  keys: {
    env: 'BULLPEN_API_KEYS',
    schema: keysSchema,
    help: 'Keys that open the API, separated by commas; each has at least 20 characters.',
  },
  devKey: {
    env: 'BULLPEN_API_DEV_KEY',
    schema: keySchema.optional(),
    help: 'In development: the key that opens the API from this machine. Made at random when left out.',
  },
  bodyLimit: {
    env: 'BULLPEN_API_BODY_LIMIT',
    schema: wholeNumber(1_024, 16_777_216).default(262_144),
    help: 'The largest request body, in bytes.',
  },
} as const satisfies SettingsTable

export type ApiSettings = SettingsOf<typeof API_SETTINGS>
/** What a program passes: every setting may be left out. */
export type ApiConfig = PartialSettings<typeof API_SETTINGS>

export const API_RULES: readonly SettingsRule<typeof API_SETTINGS>[] = [
  ({ environment, devKey }) =>
    environment === 'production' && devKey !== undefined
      ? 'devKey (BULLPEN_API_DEV_KEY) is for development alone; in production use keys (BULLPEN_API_KEYS), or set environment (BULLPEN_ENV) to development'
      : undefined,
  ({ environment, keys }) =>
    environment === 'production' && keys.length === 0
      ? 'there are no keys (BULLPEN_API_KEYS), and in production nothing is open without one; environment (BULLPEN_ENV) development makes one for this machine'
      : undefined,
  ({ host, port, metricsHost, metricsPort }) =>
    port !== 0 && port === metricsPort && host === metricsHost
      ? `port and metricsPort (BULLPEN_API_PORT, BULLPEN_API_METRICS_PORT) are both ${port}; metrics have a port of their own`
      : undefined,
]
