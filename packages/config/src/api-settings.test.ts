// Tests the API's settings: defaults, keys and contradictions.
import { describe, expect, expectTypeOf, it } from 'vitest'
import { API_RULES, API_SETTINGS, type ApiConfig } from './api-settings.ts'
import { checkSettings, readSettings } from './settings.ts'

const KEY = 'a-key-of-20-letters-'

const check = (config: ApiConfig) => checkSettings(API_SETTINGS, API_RULES, config)
const read = (env: Record<string, string>, argv: readonly string[] = []) =>
  readSettings('API', API_SETTINGS, API_RULES, { argv, env, readFile: () => '{}' })

describe('the settings of the API', () => {
  it('have defaults for all but the keys', () => {
    expect(check({ keys: [KEY] })).toEqual({
      redisUrl: 'redis://127.0.0.1:6379',
      redisCaFile: undefined,
      redisCertFile: undefined,
      redisKeyFile: undefined,
      namespace: 'bullpen',
      environment: 'production',
      logLevel: 'info',
      host: '127.0.0.1',
      port: 8080,
      metricsHost: '127.0.0.1',
      metricsPort: 9464,
      keys: [KEY],
      keyLimits: undefined,
      devKey: undefined,
      bodyLimit: 262_144,
      bulkBodyLimit: 4_194_304,
      minBodyRate: 16_384,
      idempotencyLife: '24h',
      idempotencyMemoryShare: 25,
      memoryWatermark: 80,
      replicationTimeout: '1s',
      queueMemoryShare: 50,
      allowBoardChanges: false,
      allowEviction: false,
      corsOrigins: [],
    })
  })

  it('are read from the environment, in which keys are a list', () => {
    const settings = read({ BULLPEN_API_KEYS: `${KEY}1, ${KEY}2,`, BULLPEN_API_PORT: '9000' })
    expect(settings).toMatchObject({ keys: [`${KEY}1`, `${KEY}2`], port: 9_000 })
  })

  it('have names and limits of keys, which are JSON in the environment', () => {
    const { keys, keyLimits } = read({
      BULLPEN_API_KEYS: `shop:${KEY}1,shop:${KEY}2,${KEY}3`,
      BULLPEN_API_KEY_LIMITS: '{"shop":{"enqueueRate":"100/1s"},"d4c50494":{"enqueueRate":"none"},"*":{}}',
    })
    expect(keys).toEqual([`shop:${KEY}1`, `shop:${KEY}2`, `${KEY}3`])
    expect(keyLimits).toEqual({ shop: { enqueueRate: '100/1s' }, d4c50494: { enqueueRate: 'none' }, '*': {} })
    expect(check({ keys, keyLimits }).keyLimits).toEqual(keyLimits)
  })

  it('have types, so that TypeScript finds mistakes in a program', () => {
    type Limits = Readonly<Record<string, { enqueueRate?: string | undefined }>>
    expectTypeOf<ApiConfig['keys']>().toEqualTypeOf<string | readonly string[] | undefined>()
    expectTypeOf<ApiConfig['corsOrigins']>().toEqualTypeOf<string | readonly string[] | undefined>()
    expectTypeOf<ApiConfig['keyLimits']>().toEqualTypeOf<string | Limits | undefined>()
  })

  it('have limits that are reported with the place of the error if they are not JSON', () => {
    expect(() => read({ BULLPEN_API_KEYS: KEY, BULLPEN_API_KEY_LIMITS: '{"shop":\n {"enqueueRate": 7/s}}' })).toThrow(
      /BULLPEN_API_KEY_LIMITS is .*or "none"; the text is not valid JSON: see line 2, column 19$/,
    )
  })

  it('accept true and false', () => {
    const of = (text: string) => read({ BULLPEN_API_KEYS: KEY, BULLPEN_API_ALLOW_EVICTION: text }).allowEviction
    expect([of('true'), of('false')]).toEqual([true, false])
    expect(() => of('yes')).toThrow('BULLPEN_API_ALLOW_EVICTION is "yes"; expected true or false')
  })

  it('have origins, which are a list in the environment', () => {
    const origins = 'https://shop.example.com, http://localhost:5173'
    const { corsOrigins } = read({ BULLPEN_API_KEYS: KEY, BULLPEN_API_CORS_ORIGINS: origins })
    expect(corsOrigins).toEqual(['https://shop.example.com', 'http://localhost:5173'])
  })

  it.each([
    ['no key in production', {}, /keys \(BULLPEN_API_KEYS\) is empty/],
    ['a development key in production', { BULLPEN_API_KEYS: KEY, BULLPEN_API_DEV_KEY: KEY }, /for development only/],
    [
      'a short key',
      { BULLPEN_API_KEYS: 'short' },
      /BULLPEN_API_KEYS is not valid; expected keys separated by commas, each of at least 20/,
    ],
    [
      'a key with an invalid name',
      { BULLPEN_API_KEYS: `Shop:${KEY}` },
      /there may be a name and a colon; a name is a lower-case/,
    ],
    ['a name that is as long as a key', { BULLPEN_API_KEYS: `${KEY}:${KEY}` }, /a name is .* at most 19 characters/],
    [
      'limits of an unknown key',
      { BULLPEN_API_KEYS: `shop:${KEY}`, BULLPEN_API_KEY_LIMITS: '{"shpo":{"enqueueRate":"1/1s"}}' },
      /has limits for 'shpo', but no key in keys \(BULLPEN_API_KEYS\) has this name.*shop/,
    ],
    [
      'a fingerprint that no key has',
      { BULLPEN_API_KEYS: `${KEY}3`, BULLPEN_API_KEY_LIMITS: '{"0813ba6e":{"enqueueRate":"1/1s"}}' },
      /has limits for '0813ba6e', but .* no key without a name has this fingerprint/,
    ],
    [
      'the fingerprint of a key that has a name',
      { BULLPEN_API_KEYS: `shop:${KEY}3`, BULLPEN_API_KEY_LIMITS: '{"d4c50494":{"enqueueRate":"1/1s"}}' },
      /has limits for 'd4c50494', but no key/,
    ],
    [
      'one key under two names',
      { BULLPEN_API_KEYS: `${KEY}1,${KEY}3,shop:${KEY}3` },
      /entries 2 \('d4c50494'\) and 3 \('shop'\) of keys \(BULLPEN_API_KEYS\) are the same key under two names/,
    ],
    [
      'a development key that is also a key',
      { BULLPEN_ENV: 'development', BULLPEN_API_KEYS: `${KEY}1,shop:${KEY}`, BULLPEN_API_DEV_KEY: KEY },
      /devKey \(BULLPEN_API_DEV_KEY\) is also entry 2 \('shop'\) of keys \(BULLPEN_API_KEYS\)/,
    ],
    [
      'the fingerprint of another key as a name',
      { BULLPEN_API_KEYS: `${KEY}3,d4c50494:${KEY}1` },
      /entry 2 of keys \(BULLPEN_API_KEYS\) has the name 'd4c50494', which is the fingerprint of entry 1; choose another/,
    ],
    [
      'the fingerprint of another key, which has a name, as a name',
      { BULLPEN_API_KEYS: `d4c50494:${KEY}1,shop:${KEY}3` },
      /entry 1 of keys \(BULLPEN_API_KEYS\) has the name 'd4c50494', which is the fingerprint of entry 2; choose another/,
    ],
    [
      'the fingerprint of the development key as a name',
      { BULLPEN_ENV: 'development', BULLPEN_API_KEYS: `d4c50494:${KEY}`, BULLPEN_API_DEV_KEY: `${KEY}3` },
      /has the name 'd4c50494', which is the fingerprint of devKey \(BULLPEN_API_DEV_KEY\); choose another/,
    ],
    [
      'limits that are not JSON',
      { BULLPEN_API_KEYS: KEY, BULLPEN_API_KEY_LIMITS: '100/1s' },
      /BULLPEN_API_KEY_LIMITS is not valid; expected a JSON object/,
    ],
    [
      'an invalid rate',
      { BULLPEN_API_KEYS: KEY, BULLPEN_API_KEY_LIMITS: '{"*":{"enqueueRate":"100"}}' },
      /enqueueRate is a number of tasks per period, such as '100\/1s', or "none"; the limits of '\*' are not valid$/,
    ],
    [
      'limits of a key named __proto__',
      { BULLPEN_API_KEYS: KEY, BULLPEN_API_KEY_LIMITS: '{"__proto__":{"enqueueRate":"1/1s"}}' },
      /BULLPEN_API_KEY_LIMITS is not valid; .*a name is "\*" or the name of an API key/,
    ],
    ['one port for two', { BULLPEN_API_KEYS: KEY, BULLPEN_API_PORT: '9464' }, /both 9464/],
    [
      'a port that is no number',
      { BULLPEN_API_KEYS: KEY, BULLPEN_API_PORT: '80a' },
      /BULLPEN_API_PORT is "80a"; expected a whole number/,
    ],
    [
      'a misspelt variable',
      { BULLPEN_API_KEY: KEY },
      /BULLPEN_API_KEY is not a setting; did you mean BULLPEN_API_KEYS/,
    ],
    [
      'an origin with a path',
      { BULLPEN_API_KEYS: KEY, BULLPEN_API_CORS_ORIGINS: 'https://a.example, https://b.example/' },
      /BULLPEN_API_CORS_ORIGINS is .*; expected origins separated by commas/,
    ],
    ['any origin', { BULLPEN_API_KEYS: KEY, BULLPEN_API_CORS_ORIGINS: '*' }, /BULLPEN_API_CORS_ORIGINS/],
    [
      'an address of Redis that is no URL',
      { BULLPEN_API_KEYS: KEY, REDIS_URL: 'localhost:6379' },
      /REDIS_URL is not valid; expected a URL such as redis:/,
    ],
  ])('are rejected with %s', (_name, env, message) => {
    expect(() => read(env)).toThrow(message)
  })

  it('are rejected without repeating a key', () => {
    expect(() => read({ BULLPEN_API_KEYS: 'short-secret' })).toThrow(/^(?!.*short-secret)/s)
  })

  it('may name a key by its own fingerprint', () => {
    expect(read({ BULLPEN_API_KEYS: `${KEY}3,d4c50494:${KEY}3` }).keys).toHaveLength(2)
  })

  it('are rejected without repeating a key that is also the development key', () => {
    const env = { BULLPEN_ENV: 'development', BULLPEN_API_KEYS: KEY, BULLPEN_API_DEV_KEY: KEY }
    expect(() => read(env)).toThrow(/^(?!.*a-key-of-20-letters-)/s)
  })

  it('are rejected without repeating a key that has two names', () => {
    expect(() => read({ BULLPEN_API_KEYS: `a:${KEY},b:${KEY}` })).toThrow(/^(?!.*a-key-of-20-letters-)/s)
  })

  it('may list a key twice under one name', () => {
    expect(read({ BULLPEN_API_KEYS: `a:${KEY},a:${KEY}` }).keys).toHaveLength(2)
  })

  it.each([
    [
      'as a name',
      { [KEY]: { enqueueRate: '1/1s' } },
      /; a name is "\*" or the name of an API key: a lower-case letter/,
    ],
    ['as limits', { shop: KEY }, /; the limits of 'shop' are not valid$/],
    ['as a limit', { shop: { [KEY]: '1/1s' } }, /; the limits of 'shop' are not valid$/],
    ['as JSON', KEY, /BULLPEN_API_KEY_LIMITS is not valid; expected a JSON object/],
  ])('are rejected without repeating a key that was written %s among the limits', (_place, limits, message) => {
    const env = { BULLPEN_API_KEYS: `shop:${KEY}`, BULLPEN_API_KEY_LIMITS: JSON.stringify(limits) }
    expect(() => read(env)).toThrow(message)
    expect(() => read(env)).toThrow(/^(?!.*a-key-of-20-letters-)/s)
  })

  it('require no key in development', () => {
    expect(check({ environment: 'development' }).keys).toEqual([])
    expect(check({ environment: 'development', devKey: KEY }).devKey).toBe(KEY)
  })
})
