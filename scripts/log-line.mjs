// Turns a line of a child's log into what is worth showing on the terminal: warnings and errors, shortly.
const SHOWN = ['warn', 'error', 'fatal']

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
  if (!SHOWN.includes(entry?.level)) return undefined
  const { level, msg, err, id, task } = entry
  const about = [task, id].filter((part) => typeof part === 'string').join(' ')
  const cause = err?.message && err.message !== msg ? `: ${err.message}` : ''
  return [level, about, `${msg ?? ''}${cause}`].filter(Boolean).join('  ')
}
