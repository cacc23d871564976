// Sets headers that restrict what browsers may do with a response.
import type { FastifyReply } from 'fastify'

/** The policy for data, which may not load, run or frame anything. */
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

/**
 * The policy for the board, the reference and the login form, which allows scripts, styles, fonts and connections only from this
 * origin. Styles also allow 'unsafe-inline', because the board and the reference set styles on elements. Their scripts are files.
 */
const PAGE_POLICY = [
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

/** The headers of every response. Those of a page replace the policy. */
export const DATA_HEADERS = {
  'content-security-policy': DATA_POLICY,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const

const PAGE_HEADERS = {
  'content-security-policy': PAGE_POLICY,
  // For browsers that do not know the policy's frame-ancestors.
  'x-frame-options': 'DENY',
  // The development login link contains a key.
  'referrer-policy': 'no-referrer',
} as const

/** Sets the headers of a page, or of a response that redirects a browser. Data has no links and loads nothing, so it needs fewer. */
export function setPageHeaders(reply: FastifyReply): FastifyReply {
  return reply.headers(PAGE_HEADERS)
}
