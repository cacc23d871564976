// Encodes the parts of a request: its URL, its body and its wait.
import { ProblemError } from '@bullpen/contract/internal'

/** @throws ProblemError `invalid_input` if JSON cannot represent the value. */
export function toJson(value: object): string {
  try {
    return JSON.stringify(value)
  } catch (cause) {
    // If an object contains itself, the other lines of the message show where.
    const [reason] = String((cause as Error).message).split('\n')
    const detail = `the input cannot be written as JSON: ${reason}`
    throw new ProblemError({ code: 'invalid_input', outcome: 'refused', detail, cause })
  }
}

export function waitQuery(waitMs: number): string {
  return waitMs === 0 ? '' : `?wait=${waitMs / 1_000}`
}

/** Returns the query with those of these parameters that have a value, or an empty string if none has one. */
export function queryText(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const given = Object.entries(parameters).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, `${value}`]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** The names of the path parameters other than `id`, by the segment before them. */
const PARAMETERS: Readonly<Record<string, string>> = { queues: 'queue', schedules: 'name' }

/**
 * Returns the URL of a request. `path` is relative to the API's address, and its parameters are already percent-encoded.
 *
 * @throws ProblemError `invalid_request` if a parameter is empty, '.' or '..', because the request would reach another route: a URL drops
 * such segments, even if they are percent-encoded.
 */
export function addressOf(baseUrl: URL, path: string): URL {
  const segments = path.replace(/\?.*/s, '').split('/')
  const at = segments.findIndex((segment) => segment === '' || segment === '.' || segment === '..')
  if (at < 0) return new URL(path, baseUrl)
  const parameter = PARAMETERS[segments[at - 1] ?? ''] ?? 'id'
  const message = `expected an id or a name, got '${segments[at]}', which cannot be a segment of a URL's path`
  throw new ProblemError({
    code: 'invalid_request',
    outcome: 'refused',
    detail: `${parameter}: ${message}`,
    errors: [{ parameter, message }],
  })
}
