// Lists the problems that every route with a body can return.
import type { Route } from './route.ts'

export const BODY_PROBLEMS = [
  'malformed_json',
  'invalid_request',
  'unauthorized',
  'payload_too_large',
  'unsupported_media_type',
  'redis_unavailable',
] as const satisfies Route['problems']
