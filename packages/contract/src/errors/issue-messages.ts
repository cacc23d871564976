// Replaces zod's messages with ones that name the accepted values.
import type { z } from 'zod'

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
