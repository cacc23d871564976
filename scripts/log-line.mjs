// Turns a line of a child's log into what is worth showing on the terminal: warnings and errors, shortly.
const WARNING = 40 // pino's number for a warning
const NAMES = { 40: 'warn', 50: 'error', 60: 'fatal' }

/**
 * @param {string} line as the child wrote it
 * @param {'stdout' | 'stderr'} stream
 * @returns {string | undefined} undefined for what belongs in the log file alone
 */
export function worthShowing(line, stream) {
  if (line.trim() === '') return undefined
  let entry
  try {
    entry = JSON.parse(line)
  } catch {
    return stream === 'stderr' ? line : undefined // a stack trace, or a warning of Node itself
  }
  if (typeof entry?.level !== 'number' || entry.level < WARNING) return undefined
  const { level, msg, err, taskId, task } = entry
  const about = [task, taskId].filter((part) => typeof part === 'string').join(' ')
  const cause = err?.message && err.message !== msg ? `: ${err.message}` : ''
  return [NAMES[level] ?? level, about, `${msg ?? ''}${cause}`].filter(Boolean).join('  ')
}
