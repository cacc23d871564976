// Parses how the concurrency keys of a queue take turns.
import { checkConcurrencyKey } from './concurrency-key.ts'
import { suggestion } from './nearest.ts'
import { type Fail, isRecord } from './options.ts'

export interface FairnessOptions {
  /**
   * How many tasks of a concurrency key start for each task of a key with the weight 1, for example `{ acme: 3 }`: a number from 0.001
   * to 1000. Keys that are not listed have the weight 1.
   */
  readonly weights?: Readonly<Record<string, number>>
}

/** How the concurrency keys of a queue take turns. */
export interface Fairness {
  /** The weights that are not 1, by concurrency key. */
  readonly weights: Readonly<Record<string, number>>
}

const MIN_WEIGHT = 0.001
const MAX_WEIGHT = 1_000

const SETTINGS: readonly string[] = ['weights'] satisfies readonly (keyof FairnessOptions)[]

/** `fail` throws an error that names the queue. */
export function parseFairness(given: true | FairnessOptions, fail: Fail): Fairness {
  const expected = 'expected true or an object such as { weights: { acme: 3 } }'
  if (given !== true && !isRecord(given)) fail(`fairness is ${JSON.stringify(given)}; ${expected}`)
  const options: FairnessOptions = given === true ? {} : given
  const unknown = Object.keys(options).find((setting) => !SETTINGS.includes(setting))
  if (unknown !== undefined) fail(`fairness.${unknown} is not a setting; ${expected}${suggestion(unknown, SETTINGS)}`)
  const { weights = {} } = options
  if (!isRecord(weights)) fail(`fairness.weights is ${JSON.stringify(weights)}; expected an object such as { acme: 3 }`)
  for (const [key, weight] of Object.entries(weights)) {
    checkConcurrencyKey('fairness.weights', key, fail)
    const shown = typeof weight === 'number' ? weight : JSON.stringify(weight)
    if (typeof weight !== 'number' || !(weight >= MIN_WEIGHT && weight <= MAX_WEIGHT)) {
      fail(
        `fairness.weights gives ${JSON.stringify(key)} the weight ${shown}; expected a number from ${MIN_WEIGHT} to ${MAX_WEIGHT}`,
      )
    }
  }
  return Object.freeze({ weights: Object.freeze({ ...weights }) })
}

/** Returns the weight of a concurrency key. */
export function weightOf({ weights }: Fairness, key: string): number {
  return Object.hasOwn(weights, key) ? (weights[key] ?? 1) : 1
}
