// Converts a schema's errors to a list of fields, each with a message that names the accepted values.
import type { FieldError } from '@bullpen/contract'
import type { z } from 'zod'

type Issue = z.core.$ZodIssue

/** The maximum number of fields in a response, which should not be longer than the request. */
const MAX_FIELD_ERRORS = 20

/** Returns one error for each invalid field, but at most 20. Every unknown field is reported separately. */
export function fieldErrors(error: z.core.$ZodError): readonly FieldError[] {
  const errors = error.issues.flatMap((issue) => fieldErrorsOf(issue))
  const more = errors.length - MAX_FIELD_ERRORS
  return more <= 0 ? errors : [...errors.slice(0, MAX_FIELD_ERRORS), { path: '', message: `and ${more} more` }]
}

/**
 * Replaces zod's default messages, because they do not name the accepted values. Messages that a schema defines take
 * precedence.
 */
export const describeIssue: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined
        ? `missing; expected ${withArticle(issue.expected)}`
        : `expected ${withArticle(issue.expected)}, got ${kindOf(issue.input)}`
    case 'invalid_value':
      return `${issue.input === undefined ? 'missing; ' : ''}expected ${oneOf(issue.values)}`
    case 'too_small':
      return outOfBounds(issue, issue.minimum, issue.inclusive === false ? 'more than' : 'at least')
    case 'too_big':
      return outOfBounds(issue, issue.maximum, issue.inclusive === false ? 'less than' : 'at most')
    default:
      return undefined
  }
}

type Bounds = Pick<z.core.$ZodIssueTooSmall, 'origin' | 'exact'> & { readonly input?: unknown }

/** Returns a message such as `expected at most 5, got 7` or `expected at least 1 character`. Strings and lists are not repeated. */
function outOfBounds({ origin, exact, input }: Bounds, bound: number | bigint, comparison: string): string | undefined {
  const limit = `${exact ? 'exactly' : comparison} ${bound}`
  const plural = bound === 1 ? '' : 's'
  switch (origin) {
    case 'number':
    case 'int':
    case 'bigint':
      return `expected ${limit}, got ${input}`
    case 'string':
      return `expected ${limit} character${plural}`
    case 'array':
    case 'set':
      return `expected ${limit} item${plural}`
    default:
      return undefined
  }
}

function oneOf(values: readonly z.core.util.Primitive[]): string {
  const quoted = values.map((value) => JSON.stringify(value))
  return quoted.length <= 2 ? quoted.join(' or ') : `one of ${quoted.join(', ')}`
}

function withArticle(type: string): string {
  const name = type === 'int' ? 'integer' : type
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : withArticle(typeof value)
}

function fieldErrorsOf(issue: Issue): FieldError[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: pathOf([...issue.path, key]), message: 'unknown field' }))
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    // zod's message is only 'Invalid input'. It is more useful to list what each alternative expects.
    const messages = issue.errors.map((branch) => branch.map(({ message }) => message).join(' and '))
    return [{ path: pathOf(issue.path), message: [...new Set(messages)].join('; or ') }]
  }
  return [{ path: pathOf(issue.path), message: issue.message }]
}

/** Returns a path such as `input.lines[3].sku`. Parts that are not identifiers are quoted. */
export function pathOf(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => {
      if (typeof part === 'number') return `[${part}]`
      const name = String(part)
      if (!/^[A-Za-z_$][\w$-]*$/.test(name)) return `[${JSON.stringify(name)}]`
      return index === 0 ? name : `.${name}`
    })
    .join('')
}
