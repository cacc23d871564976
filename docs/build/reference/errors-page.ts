// Builds the reference page of the error codes.
import type { ErrorCode } from '@bullpen/contract'
import { ERRORS } from '@bullpen/contract/internal'
import { ERROR_ADVICE } from '../error-advice.ts'
import { routes } from './api-routes.ts'
import { code, page, table } from './markdown.ts'

export function errorsPage(): string {
  const answered = new Set<ErrorCode>([
    ...routes().flatMap(({ problems }) => problems),
    'route_not_found',
    'method_not_allowed',
    'internal_error',
    'forbidden',
    'request_timeout',
    'headers_too_large',
    'unsupported_transfer_coding',
    'unsupported_http_version',
  ])
  const rows = (wanted: (code: ErrorCode) => boolean) => (Object.keys(ERROR_ADVICE) as ErrorCode[]).filter(wanted)
  return page(
    'Error codes',
    `
The API reports every error as a problem detail (RFC 9457, \`application/problem+json\`) with a \`code\` from the first table. Programs
should rely on \`code\`, because the texts may change. \`type\` is the URL of a page on the API that describes the code. A response
with status 429 or 503 has the header \`Retry-After\`: the number of seconds after which to try again, usually 1.

\`errors\` lists the invalid parts of the request, at most 20. Each entry has a \`message\` and one of these fields:

- \`pointer\`: a JSON Pointer (RFC 6901) to the value in the body, such as \`/input/lines/3/sku\`. It is empty if the body as a whole is
  wrong.
- \`parameter\`: the name of a parameter of the query or the path, such as \`wait\`.
- \`header\`: the name of a header, such as \`Idempotency-Key\`.`,
    '## Returned by the API',
    table(
      ['code', 'status', 'meaning', 'what to do'],
      rows((code) => answered.has(code)).map((name) => [
        code(name),
        String(ERRORS[name].status),
        ERROR_ADVICE[name].meaning,
        ERROR_ADVICE[name].action,
      ]),
    ),
    '## Thrown in your process',
    '`defineTask`, `createWorker`, `createApi` and the methods of a handler’s context throw these errors.',
    table(
      ['code', 'meaning', 'what to do'],
      rows((code) => !answered.has(code)).map((name) => [
        code(name),
        ERROR_ADVICE[name].meaning,
        ERROR_ADVICE[name].action,
      ]),
    ),
    `
Attempts have their own codes and reasons. See [States](states.md#why-an-attempt-ended). The default classifier adds codes such as
\`econnreset\` and \`http_503\`. See [Retries and errors](../how-to/retries-and-errors.md).`,
  )
}
