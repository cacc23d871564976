// Reads the entries of BullMQ's event stream.

/**
 * Returns the id of the job that has ended or was deleted, or undefined for an event of another kind. `fields` alternate with
 * their values.
 */
export function endedJob(fields: readonly string[]): string | undefined {
  let event: string | undefined
  let id: string | undefined
  for (let i = 0; i + 1 < fields.length; i += 2) {
    if (fields[i] === 'event') event = fields[i + 1]
    if (fields[i] === 'jobId') id = fields[i + 1]
  }
  return event === 'completed' || event === 'failed' || event === 'removed' ? id : undefined
}
