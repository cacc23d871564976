// Sends the small pages of the API itself, which need no scripts.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { setPageHeaders } from './security-headers.ts'

/** The content is HTML, so it must not contain text of a caller. */
export interface Page {
  readonly status: 200 | 401 | 404
  readonly title: string
  readonly content: string
}

/** Returns whether a browser is loading a page. Scripts and other programs list other content types first. */
export function opensPage({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && (headers.accept ?? '').startsWith('text/html')
}

export function sendPage(reply: FastifyReply, { status, title, content }: Page): FastifyReply {
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="bullpen"')
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; display: grid; place-content: center; min-height: 90vh; color-scheme: light dark }
  form { display: grid; gap: .5rem } input, button { font: inherit; padding: .4rem .7rem } input { width: 24rem; max-width: 80vw }
</style>
<h1>Bullpen</h1>
${content}
</html>
`
  return setPageHeaders(reply).code(status).header('content-type', 'text/html; charset=utf-8').send(html)
}
