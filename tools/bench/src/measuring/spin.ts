// Computes for a fixed number of rounds, so that all sides of a benchmark do the same however busy the machine is.

export function spin(rounds: number): number {
  let hash = 7
  for (let i = 0; i < rounds; i++) hash = (Math.imul(hash, 31) + i) | 0
  return hash
}

/** Returns the number of rounds that take one microsecond of CPU time, as the best of several trials. */
export function roundsPerMicrosecond(): number {
  const rounds = 1_000_000
  const trials = Array.from({ length: 20 }, () => {
    const before = process.cpuUsage()
    spin(rounds)
    const { user, system } = process.cpuUsage(before)
    return user + system
  })
  return rounds / Math.min(...trials)
}
