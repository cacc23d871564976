// Defines the name that a request gives for its sender, which is logged and stored.
import { nameText } from '../definition/texts.ts'

/** The schema of a `by`. */
export const requesterName = nameText(100)

/** The `by` of requests that only the audit log records. */
export const auditedBy = requesterName
  .optional()
  .describe("Who sends the request, for the audit log. The API adds the API key's fingerprint.")
