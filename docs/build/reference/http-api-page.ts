// Builds the reference page of the HTTP API.

import { routes } from './api-routes.ts'
import { code, page, table } from './markdown.ts'

const ACCESS = { key: 'API key', browser: 'API key or browser session', open: 'none' } as const

export function httpApiPage(): string {
  const rows = routes().map(({ method, path, summary, access }) => [
    code(`${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`),
    summary,
    ACCESS[access],
  ])
  return page(
    'HTTP API',
    `
A running API serves its own reference: \`/reference\` for people and \`/openapi.json\` (OpenAPI 3.1) for tools. Both contain your tasks'
schemas. This page lists only the routes. For examples of requests and responses, see [Use the HTTP API](../how-to/http-api.md).`,
    table(
      ['route', 'what it does', 'authentication'],
      [
        ...rows,
        ['`GET /openapi.json`', 'The OpenAPI document', ACCESS.browser],
        ['`GET /reference`', 'The same document as a page for people', ACCESS.browser],
        ['`GET /board/`', '[Bull Board](../how-to/bull-board.md), whose buttons are off by default', ACCESS.browser],
        ['`GET /board/login`', 'The form that starts a browser session', ACCESS.open],
      ],
    ),
    `
Requests authenticate with the header \`Authorization: Bearer KEY\`. A browser session, which starts at \`/board/login\`, has
read-only access, except to the board if \`BULLPEN_API_ALLOW_BOARD_CHANGES\` is set. For the errors, see [Error codes](errors.md).`,
  )
}
