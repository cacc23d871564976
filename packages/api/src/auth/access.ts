// Controls access. Every route requires an API key unless it declares otherwise.
import { BullpenError } from '@bullpen/contract'
import { parseCookie } from 'cookie'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { opensPage } from '../http/page.ts'
import { sendProblem } from '../http/problems/problem.ts'
import type { Key, Keyring, Origin } from './keyring.ts'
import { sendLoginPage, sendReloadPage } from './login-page.ts'

/**
 * `open` does not require a key. `browser` requires an API key or a session cookie, because a browser cannot send a key when it
 * loads a page. Routes that change something must also check that the browser's request comes from one of the API's own pages
 * (same-origin.ts). `key` (the default) requires an API key.
 */
export type Access = 'open' | 'browser' | 'key'

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access
  }
  interface FastifyRequest {
    /** Identifies the API key of the request or of its session in audit records. Undefined if the request has neither. */
    keyFingerprint: string | undefined
    /** The name of the request's API key, under which its limits are set. Undefined if the request has no key. */
    apiKeyName: string | undefined
    /** The name that the user gave when the browser session began, for audit records. Undefined if there is none. */
    requesterName: string | undefined
  }
}

export const SESSION_COOKIE = 'bullpen_session'

export const WRONG_KEY = 'the API does not accept this key'

export function originOf(request: FastifyRequest): Origin {
  const { headers } = request
  return {
    address: request.ip,
    forwarded: 'forwarded' in headers || 'x-forwarded-for' in headers || 'x-real-ip' in headers,
  }
}

/**
 * Returns a hook that rejects requests without access. The hook sends the `unauthorized` reply instead of throwing, because the
 * board has its own error handler.
 */
export function requireAccess(keyring: Keyring, now: () => number): onRequestHookHandler {
  return (request, reply, done) => {
    const access = request.routeOptions.config.access ?? 'key'
    if (access === 'open' || isAllowed(request, access)) return done()
    refuse(request, reply, access)
  }

  function isAllowed(request: FastifyRequest, access: Access): boolean {
    const { authorization, cookie } = request.headers
    if (authorization !== undefined) {
      return identify(request, keyring.find(bearerToken(authorization) ?? '', originOf(request)))
    }
    if (access !== 'browser' || cookie === undefined) return false
    const value = parseCookie(cookie)[SESSION_COOKIE]
    const session = value === undefined ? undefined : keyring.findSession(value, originOf(request), now())
    request.requesterName = session?.requester
    return identify(request, session?.key)
  }
}

function identify(request: FastifyRequest, key: Key | undefined): boolean {
  request.keyFingerprint = key?.fingerprint
  request.apiKeyName = key?.name
  return key !== undefined
}

function refuse(request: FastifyRequest, reply: FastifyReply, access: Access): void {
  const { authorization } = request.headers
  if (access === 'browser' && authorization === undefined && opensPage(request)) {
    // The browser may have a session that it does not send with a link on another site, because its cookie is SameSite=Strict.
    if (request.headers['sec-fetch-site'] === 'cross-site') sendReloadPage(reply)
    else sendLoginPage(reply, { destination: request.url })
    return
  }
  sendProblem(request, reply, new BullpenError('unauthorized', reasonOf(authorization, access)))
}

/** Returns the reason for the rejection. The text never repeats the header, which may contain a key. */
function reasonOf(authorization: string | undefined, access: Access): string {
  if (authorization === undefined) {
    const inBrowser = access === 'browser' ? ', or log in at /board/login in a browser' : ''
    return `the API key is missing; send 'Authorization: Bearer KEY'${inBrowser}`
  }
  if (bearerToken(authorization) !== undefined) return WRONG_KEY
  return `the Authorization header does not begin with "Bearer "; send 'Authorization: Bearer KEY'`
}

function bearerToken(authorization: string): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
}
