// Serves the login form, which a browser without a session sees instead of the board or the reference, and a page that makes a browser
// send its session.
import type { FastifyReply } from 'fastify'
import { setPageHeaders } from '../http/security-headers.ts'

/**
 * The pages to which users can be redirected after logging in. The list is closed, because an arbitrary destination could lead to
 * another site.
 */
export const LOGIN_DESTINATIONS = ['/board/', '/reference'] as const

export type LoginDestination = (typeof LOGIN_DESTINATIONS)[number]

/** The maximum length of the name that users may give for audit records, as in requests to the API. */
export const MAX_REQUESTER_LENGTH = 100

export interface LoginForm {
  /**
   * The path that the browser requested. After logging in, the user is redirected to the nearest of {@link LOGIN_DESTINATIONS}.
   */
  readonly destination: string
  /** Why the previous attempt to log in failed. */
  readonly problem?: string
  /** Defaults to 401. */
  readonly status?: 200 | 401
}

export function sendLoginPage(reply: FastifyReply, { destination, problem, status = 401 }: LoginForm): FastifyReply {
  return sendPage(reply, status, loginPage(loginDestination(destination), problem))
}

/** Makes the browser request the same page again. This request comes from the API's own page, so the browser sends its session. */
export function sendReloadPage(reply: FastifyReply): FastifyReply {
  return sendPage(reply, 401, RELOAD_PAGE)
}

function sendPage(reply: FastifyReply, status: 200 | 401, html: string): FastifyReply {
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="bullpen"')
  return setPageHeaders(reply).code(status).header('content-type', 'text/html; charset=utf-8').send(html)
}

const RELOAD_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0">
<title>Bullpen</title>
</html>
`

export function loginDestination(path: string): LoginDestination {
  return path.startsWith('/reference') ? '/reference' : '/board/'
}

/**
 * Returns the page's HTML. The form posts the key, so that the key does not appear in any address, browser history or access
 * log.
 */
function loginPage(next: LoginDestination, problem: string | undefined): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Bullpen: log in</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; display: grid; place-content: center; min-height: 90vh; color-scheme: light dark }
  form { display: grid; gap: .5rem } input, button { font: inherit; padding: .4rem .7rem } input { width: 24rem; max-width: 80vw }
</style>
<h1>Bullpen</h1>
${problem === undefined ? '' : `<p role="alert">${problem}</p>\n`}<form method="post" action="/board/login">
  <input type="hidden" name="next" value="${next}">
  <input type="password" name="key" aria-label="API key" placeholder="API key" autocomplete="current-password" autofocus required>
  <input name="name" aria-label="Your name, for the audit log" placeholder="Your name, for the audit log" maxlength="${MAX_REQUESTER_LENGTH}" autocomplete="name">
  <button>Log in</button>
</form>
</html>
`
}
