// What a schema finds wrong, as a list of places and plain sentences.
import type { FieldError } from '@bullpen/contract'
import type { z } from 'zod'

type Issue = z.core.$ZodIssue

/** An answer must not be longer than the request that it refuses. */
const FAULTS_AT_MOST = 20

/** The places that are wrong, each once, twenty at most; unknown fields are places of their own. */
export function faultsOf(error: z.core.$ZodError): readonly FieldError[] {
  const errors = error.issues.flatMap((issue) => faultsOfIssue(issue))
  const more = errors.length - FAULTS_AT_MOST
  return more <= 0 ? errors : [...errors.slice(0, FAULTS_AT_MOST), { path: '', message: `and ${more} more` }]
}

function faultsOfIssue(issue: Issue): FieldError[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: pathOf([...issue.path, key]), message: 'unknown field' }))
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    // zod's own message says only 'Invalid input'; what each alternative misses is more useful.
    const messages = issue.errors.map((branch) => branch.map(({ message }) => message).join(' and '))
    return [{ path: pathOf(issue.path), message: [...new Set(messages)].join('; or ') }]
  }
  return [{ path: pathOf(issue.path), message: issue.message }]
}

/** `input.lines[3].sku`; what would not read as a name is quoted. */
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
