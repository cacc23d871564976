// Serves the login form, which a browser without a session sees instead of the board or the reference, and a page that makes a browser
// send its session.
import type { FastifyReply } from 'fastify'
import { sendPage } from '../http/page.ts'

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
  return sendPage(reply, {
    status,
    title: 'Bullpen: log in',
    content: loginForm(loginDestination(destination), problem),
  })
}

/** Makes the browser request the same page again. This request comes from the API's own page, so the browser sends its session. */
export function sendReloadPage(reply: FastifyReply): FastifyReply {
  return sendPage(reply, { status: 401, title: 'Bullpen', content: '<meta http-equiv="refresh" content="0">' })
}

export function loginDestination(path: string): LoginDestination {
  return path.startsWith('/reference') ? '/reference' : '/board/'
}

/** The form posts the key, so that the key does not appear in any address, browser history or access log. */
function loginForm(next: LoginDestination, problem: string | undefined): string {
  return `${problem === undefined ? '' : `<p role="alert">${problem}</p>\n`}<form method="post" action="/board/login">
  <input type="hidden" name="next" value="${next}">
  <input type="password" name="key" aria-label="API key" placeholder="API key" autocomplete="current-password" autofocus required>
  <input name="name" aria-label="Your name, for the audit log" placeholder="Your name, for the audit log" maxlength="${MAX_REQUESTER_LENGTH}" autocomplete="name">
  <button>Log in</button>
</form>`
}
