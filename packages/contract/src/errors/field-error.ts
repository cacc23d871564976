// Describes the invalid parts of a request: where each one is, and what is accepted there.
import { z } from 'zod'

/**
 * The place of an error. `pointer` is a JSON Pointer (RFC 6901) into the request's body, such as `/input/lines/3/sku`, and is empty
 * if the error concerns the body as a whole. `parameter` is the name of a parameter of the query or the path, or of a function.
 * `header` is the name of a header.
 */
type Place = { readonly pointer: string } | { readonly parameter: string } | { readonly header: string }

/** One invalid part of a request, and what is accepted there. */
export type FieldError = Place & { readonly message: string }

const message = z.string().describe('What is accepted there.')

export const fieldErrorSchema = z.union([
  z.object({
    pointer: z
      .string()
      .describe(
        "A JSON Pointer (RFC 6901) to the invalid value in the request's body, such as `/input/lines/3/sku`. Empty for the " +
          'body as a whole.',
      ),
    message,
  }),
  z.object({ parameter: z.string().describe('The name of the invalid parameter of the query or the path.'), message }),
  z.object({ header: z.string().describe('The name of the invalid header.'), message }),
])

/** The maximum number of errors in a response, which should not be longer than the request. */
export const MAX_ERRORS = 20

/** Returns a JSON Pointer (RFC 6901), such as `/input/lines/3/sku`. The pointer to the whole document is empty. */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** Returns text such as `/input/n: expected an integer`, or only the message if the error concerns the body as a whole. */
export function fieldErrorText(error: FieldError): string {
  const place = 'pointer' in error ? error.pointer : 'parameter' in error ? error.parameter : error.header
  return place === '' ? error.message : `${place}: ${error.message}`
}

/** Returns one error for each value of a body that its schema rejects. `base` is the path of that value in the body. */
export function bodyErrors(error: z.core.$ZodError, base: readonly PropertyKey[] = []): readonly FieldError[] {
  return error.issues.flatMap((issue) =>
    placed(issue).map(({ path, message = 'unknown field' }) => ({ pointer: jsonPointer([...base, ...path]), message })),
  )
}

/** Returns one error for each parameter that the schema of a query or a path rejects. */
export function parameterErrors(error: z.core.$ZodError): readonly FieldError[] {
  return error.issues.flatMap((issue) =>
    placed(issue).map(({ path: [name = ''], message = 'unknown parameter' }) => ({ parameter: String(name), message })),
  )
}

/** The message of a union that does not define its own. */
const ZOD_UNION_MESSAGE = 'Invalid input'

interface Placed {
  readonly path: readonly PropertyKey[]
  /** Undefined if the schema does not have this field. */
  readonly message?: string
}

/** Returns the invalid values of an issue. Every unknown field is reported separately. */
function placed(issue: z.core.$ZodIssue): readonly Placed[] {
  const { path } = issue
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => ({ path: [...path, key] }))
  // The key of a record. Zod's own message does not say what is accepted.
  if (issue.code === 'invalid_key') return [{ path, message: issue.issues.map((each) => each.message).join(' and ') }]
  if (issue.code === 'invalid_union' && issue.errors.length > 0 && issue.message === ZOD_UNION_MESSAGE) {
    // It is more useful to list what each alternative expects.
    const messages = issue.errors.map((branch) => branch.map((each) => each.message).join(' and '))
    return [{ path, message: [...new Set(messages)].join('; or ') }]
  }
  return [{ path, message: issue.message }]
}
