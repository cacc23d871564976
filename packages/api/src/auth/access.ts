// Who may ask what: nothing is open without a key unless its route says so.
import { BullpenError } from '@bullpen/contract'
import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { sendProblem } from '../http/problems.ts'
import type { Keyring, Origin } from './keyring.ts'
import { LOGIN_PAGE_HEADERS, loginPage } from './login-page.ts'

/**
 * `open`: anybody. `browser`: a key, or the cookie that the login link sets; a browser can't send a key when it loads a
 * page, and such routes change nothing. `key`: a key alone. A route that says nothing needs a key.
 */
export type Access = 'open' | 'browser' | 'key'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
  interface FastifyRequest {
    /** Which key it came with, for the audit; undefined without one. */
    keyPrint: string | undefined
  }
}

export const SESSION_COOKIE = 'bullpen_session'

export function originOf(request: FastifyRequest): Origin {
  const { headers } = request
  return {
    address: request.ip,
    forwarded: 'forwarded' in headers || 'x-forwarded-for' in headers || 'x-real-ip' in headers,
  }
}

/** Answers with `unauthorized` itself rather than by throwing: the board brings an error handler of its own. */
export function guard(keyring: Keyring, now: () => number): onRequestHookHandler {
  return (request, reply, done) => {
    const access = request.routeOptions.config.access ?? 'key'
    if (access === 'open' || mayEnter(request, access)) return done()
    if (access === 'browser' && opensPage(request)) {
      return reply.code(401).headers(LOGIN_PAGE_HEADERS).send(loginPage(request.url))
    }
    const detail =
      access === 'browser'
        ? "a key is needed: 'Authorization: Bearer KEY', or in a browser open /board/login?key=KEY first"
        : "a key is needed: 'Authorization: Bearer KEY'"
    sendProblem(request, reply, new BullpenError('unauthorized', detail))
  }

  function mayEnter(request: FastifyRequest, access: Access): boolean {
    const origin = originOf(request)
    const bearer = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1]
    if (bearer !== undefined) {
      const key = keyring.find(bearer, origin)
      request.keyPrint = key?.print
      return key !== undefined
    }
    const cookie = request.cookies[SESSION_COOKIE]
    return access === 'browser' && cookie !== undefined && keyring.acceptsSession(cookie, origin, now())
  }
}

/** A browser that opens an address; its scripts, and every other program, ask for something else than a page. */
function opensPage({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && (headers.accept ?? '').startsWith('text/html')
}
