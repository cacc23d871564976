// Sums up the unfinished tasks that a count has read, and compares the sums with the stored ones.

/** The bytes of all unfinished tasks, and the number of tasks of each API key among them. */
export interface Sums {
  readonly bytes: number
  readonly ofApiKeys: ReadonlyMap<string, number>
}

/** The last known state of each unfinished task. Takes about 150 bytes of memory for each task. */
export interface UnfinishedTasks {
  /** Notes the state of a task, in place of its earlier state. `bytes` is -1 if the task has ended or does not exist. */
  set(id: string, bytes: number, apiKeyName: string): void
  sums(): Sums
}

export function createUnfinishedTasks(): UnfinishedTasks {
  const bytesOf = new Map<string, number>()
  const apiKeyOf = new Map<string, string>()
  return {
    set(id, bytes, apiKeyName) {
      if (bytes < 0) bytesOf.delete(id)
      else bytesOf.set(id, bytes)
      if (bytes < 0 || apiKeyName === '') apiKeyOf.delete(id)
      else apiKeyOf.set(id, apiKeyName)
    },
    sums() {
      let bytes = 0
      for (const each of bytesOf.values()) bytes += each
      const ofApiKeys = new Map<string, number>()
      for (const name of apiKeyOf.values()) ofApiKeys.set(name, (ofApiKeys.get(name) ?? 0) + 1)
      return { bytes, ofApiKeys }
    },
  }
}

/** Returns by how much the stored sums exceed the counted ones. An API key whose count is right is left out. */
export function differenceOf(stored: Sums, counted: Sums): Sums {
  const ofApiKeys = new Map<string, number>()
  for (const name of new Set([...stored.ofApiKeys.keys(), ...counted.ofApiKeys.keys()])) {
    const difference = (stored.ofApiKeys.get(name) ?? 0) - (counted.ofApiKeys.get(name) ?? 0)
    if (difference !== 0) ofApiKeys.set(name, difference)
  }
  return { bytes: stored.bytes - counted.bytes, ofApiKeys }
}

/** Returns the part of two differences that both contain: of each sum, the smaller difference if both have the same sign. */
export function commonDifference(one: Sums, other: Sums): Sums {
  const ofApiKeys = new Map<string, number>()
  for (const [name, difference] of one.ofApiKeys) {
    const common = commonPart(difference, other.ofApiKeys.get(name) ?? 0)
    if (common !== 0) ofApiKeys.set(name, common)
  }
  return { bytes: commonPart(one.bytes, other.bytes), ofApiKeys }
}

export function isRight({ bytes, ofApiKeys }: Sums): boolean {
  return bytes === 0 && ofApiKeys.size === 0
}

function commonPart(one: number, other: number): number {
  return Math.sign(one) === Math.sign(other) ? Math.sign(one) * Math.min(Math.abs(one), Math.abs(other)) : 0
}
