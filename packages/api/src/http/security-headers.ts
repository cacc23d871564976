// Sets headers that restrict what browsers may do with a response.
import type { onRequestHookHandler } from 'fastify'

/** The policy for data, which may not load, run or frame anything. */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

/**
 * The policy for the board, the reference and the login form, which allows scripts, styles, fonts and connections only from this
 * origin. Styles also allow 'unsafe-inline', because the board and the reference set styles on elements. Their scripts are files.
 */
export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

export const SECURITY_HEADERS = {
  'content-security-policy': DATA_POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  // The development login link contains a key.
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const

export const setPagePolicy: onRequestHookHandler = (_request, reply, done) => {
  reply.header('content-security-policy', PAGE_POLICY)
  done()
}
