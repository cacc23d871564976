// /board/login: exchanges an API key for a session cookie, because a browser cannot send a key when it loads a page.
import { stringifySetCookie } from 'cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { setPageHeaders } from '../http/security-headers.ts'
import { originOf, SESSION_COOKIE, WRONG_KEY } from './access.ts'
import { cameOverHttps } from './forwarded.ts'
import type { Key, Keyring } from './keyring.ts'
import { loginDestination, MAX_REQUESTER_LENGTH, sendLoginPage } from './login-page.ts'

const SESSION_S = 12 * 60 * 60
const LONGEST_FORM_BYTES = 2_048
/** The paths of the pages that accept a session, and of what they link to. Browsers do not send the cookie to any other path. */
const SESSION_PATHS = ['/board', '/reference', '/openapi.json', '/v1']

export interface LoginOptions {
  readonly keyring: Keyring
  readonly now: () => number
  /**
   * True if the browser must send the cookie only over https, even if the login does not seem to have come over https. Browsers
   * treat http://localhost as secure.
   */
  readonly secure: boolean
}

export async function addLogin(app: FastifyInstance, { keyring, now, secure }: LoginOptions): Promise<void> {
  await app.register(async (scope) => {
    scope.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: LONGEST_FORM_BYTES },
      (_request, body, done) => done(null, new URLSearchParams(String(body))),
    )
    // A link may contain only the development key, which is accepted only from this machine. Other keys are posted with the form.
    scope.get('/board/login', { config: { access: 'open' } }, async (request, reply) => {
      const { search } = new URL(request.url, 'http://localhost')
      const query = new URLSearchParams(search)
      const text = query.get('key')
      const destination = loginDestination(query.get('next') ?? '')
      if (text === null) return sendLoginPage(reply, { destination, status: 200 })
      const key = keyring.find(text, originOf(request))
      if (key === undefined) return sendLoginPage(reply, { destination, problem: WRONG_KEY })
      if (key.loopbackOnly) return logIn(request, reply, key, { destination, requester: '' })
      return sendLoginPage(reply, {
        destination,
        problem: 'Only a development key can be used in a link. Enter your key here.',
      })
    })
    scope.post('/board/login', { config: { access: 'open' } }, async (request, reply) => {
      const form = formOf(request)
      const destination = loginDestination(form.get('next') ?? '')
      const key = keyring.find(form.get('key') ?? '', originOf(request))
      if (key === undefined) return sendLoginPage(reply, { destination, problem: WRONG_KEY })
      const requester = (form.get('name') ?? '').trim().slice(0, MAX_REQUESTER_LENGTH)
      return logIn(request, reply, key, { destination, requester })
    })
  })

  function logIn(
    request: FastifyRequest,
    reply: FastifyReply,
    key: Key,
    { destination, requester }: { readonly destination: string; readonly requester: string },
  ): FastifyReply {
    const value = keyring.issueSession(key, now() + SESSION_S * 1_000, requester)
    const cookies = SESSION_PATHS.map((path) =>
      stringifySetCookie({
        name: SESSION_COOKIE,
        value,
        path,
        httpOnly: true,
        // The board has buttons that change tasks, so the cookie is not sent with a request that another site has caused.
        sameSite: 'strict',
        secure: secure || cameOverHttps(request),
        maxAge: SESSION_S,
      }),
    )
    return setPageHeaders(reply).header('set-cookie', cookies).redirect(destination, 303)
  }
}

/** Returns the form's fields, or none if the body is not a form. */
function formOf({ body }: FastifyRequest): URLSearchParams {
  return body instanceof URLSearchParams ? body : new URLSearchParams()
}
