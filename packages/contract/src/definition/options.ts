// Checks the objects of options of a definition. The compiler accepts only valid options, but plain JavaScript may pass any value.
import { suggestion } from './nearest.ts'

/** Throws an error that names the definition. */
export type Fail = (problem: string) => never

export function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

interface Accepted {
  readonly settings: readonly string[]
  /** An object that would be valid, for the message. */
  readonly example?: string
  readonly noun?: 'setting' | 'limit'
  /** How the message names the settings. Defaults to a list with commas. */
  readonly expected?: string
}

/** Calls `fail` unless the options are an object with no other settings than these. */
export function checkOptions(path: string, options: unknown, accepted: Accepted, fail: Fail): void {
  const { settings, example, noun = 'setting', expected = settings.join(', ') } = accepted
  if (!isRecord(options)) {
    fail(
      `${path} is ${JSON.stringify(options)}; expected an object${example === undefined ? '' : ` such as ${example}`}`,
    )
  }
  const unknown = Object.keys(options).find((setting) => !settings.includes(setting))
  if (unknown === undefined) return
  fail(`${path}.${unknown} is not a ${noun}; expected ${expected}${suggestion(unknown, settings)}`)
}

/** Calls `fail` unless this is a whole number within the range. */
export function checkWhole(
  path: string,
  given: number,
  { min, max }: { readonly min: number; readonly max?: number },
  fail: Fail,
): void {
  if (Number.isSafeInteger(given) && given >= min && (max === undefined || given <= max)) return
  const range = max === undefined ? `of at least ${min}` : `from ${min} to ${max}`
  fail(`${path} is ${JSON.stringify(given)}; expected a whole number ${range}`)
}
