// Headers that keep browsers from doing more with an answer than they should.
import type { onRequestHookHandler } from 'fastify'

/** Answers that are data: nothing may be loaded, run or framed. */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

/**
 * The board and the reference: scripts, styles, fonts and connections of this address alone. Both set styles in their
 * elements, hence 'unsafe-inline' for styles; scripts stand in files.
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
  // The login link holds a key.
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
} as const

export const setPagePolicy: onRequestHookHandler = (_request, reply, done) => {
  reply.header('content-security-policy', PAGE_POLICY)
  done()
}
