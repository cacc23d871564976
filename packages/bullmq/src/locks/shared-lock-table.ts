// Stores a consumer's locks in memory that two threads share. The main thread writes the locks, and the renewal thread reads
// them.
//
// Messages between the threads would not be enough, because a blocked event loop can't send messages. If a task was fetched just
// before the loop was blocked, its lock would not be renewed.
//
// Each slot has a turn counter. The counter is odd while the slot is taken, and it is incremented each time the slot is taken or
// released. A reader that sees the same odd turn before and after reading has therefore read a single lock. A renewal or a loss
// is stored together with the turn that it refers to.

/** The offsets of a slot's numbers, in 32-bit words. The string with the id and the token follows the numbers. */
const WORD = { turn: 0, length: 1, since: 2, renewedTurn: 3, renewedAt: 4, lostTurn: 5 } as const
const HEAD_BYTES = 32
/** The id of a Bullpen task and BullMQ's token together take about a hundred bytes. */
const USUAL_TEXT_BYTES = 480
/** The maximum number of bytes that UTF-8 needs for one UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3
const SEPARATOR = '\n'

/** The description of a table that is sent to the other thread. */
export interface SharedTable {
  readonly memory: SharedArrayBuffer
  readonly slotBytes: number
}

/** One taken slot, as a reader saw it. If the slot is later used for another lock, its turn is different. */
export interface TableEntry {
  readonly slot: number
  readonly turn: number
  readonly id: string
  readonly token: string
}

export class SharedLockTable {
  readonly shared: SharedTable
  readonly slots: number
  readonly #words: Int32Array
  readonly #text: Buffer
  readonly #slotWords: number

  constructor(shared: SharedTable) {
    this.shared = shared
    this.slots = shared.memory.byteLength / shared.slotBytes
    this.#slotWords = shared.slotBytes / Int32Array.BYTES_PER_ELEMENT
    this.#words = new Int32Array(shared.memory)
    this.#text = Buffer.from(shared.memory)
  }

  /** Creates a table. Each slot has room for an id and token of `units` UTF-16 units, or of the usual length if that is more. */
  static of(slots: number, units = 0): SharedLockTable {
    const text = Math.max(USUAL_TEXT_BYTES, Math.ceil((units * MAX_BYTES_PER_UNIT) / HEAD_BYTES) * HEAD_BYTES)
    const slotBytes = HEAD_BYTES + text
    return new SharedLockTable({ memory: new SharedArrayBuffer(slots * slotBytes), slotBytes })
  }

  fits(units: number): boolean {
    return units * MAX_BYTES_PER_UNIT <= this.shared.slotBytes - HEAD_BYTES
  }

  /** Writes a lock into a free slot. Readers see it once this returns. The lock was taken at `since` or later. */
  take(slot: number, id: string, token: string, since: number): void {
    const at = slot * this.#slotWords
    const room = this.shared.slotBytes - HEAD_BYTES
    this.#words[at + WORD.length] = this.#text.write(
      id + SEPARATOR + token,
      slot * this.shared.slotBytes + HEAD_BYTES,
      room,
    )
    this.#words[at + WORD.since] = since
    Atomics.add(this.#words, at + WORD.turn, 1)
  }

  release(slot: number): void {
    Atomics.add(this.#words, slot * this.#slotWords + WORD.turn, 1)
  }

  /** Returns the slot's turn, which is odd while the slot is taken. */
  turn(slot: number): number {
    return Atomics.load(this.#words, slot * this.#slotWords + WORD.turn)
  }

  isTaken(slot: number): boolean {
    return (this.turn(slot) & 1) === 1
  }

  /** Reads a slot. Returns undefined if the slot is free, or if it is taken or released during the read. */
  read(slot: number): TableEntry | undefined {
    const turn = this.turn(slot)
    if ((turn & 1) === 0) return undefined
    const [id, token] = this.#read(slot)
    return this.turn(slot) === turn ? { slot, turn, id, token } : undefined
  }

  /** Returns a lower bound for the time at which the lock was taken or last renewed. */
  since(slot: number): number {
    const at = slot * this.#slotWords
    const renewed = Atomics.load(this.#words, at + WORD.renewedTurn) === this.turn(slot)
    return Atomics.load(this.#words, at + (renewed ? WORD.renewedAt : WORD.since))
  }

  markRenewed({ slot, turn }: TableEntry, sentAt: number): void {
    const at = slot * this.#slotWords
    Atomics.store(this.#words, at + WORD.renewedAt, sentAt)
    Atomics.store(this.#words, at + WORD.renewedTurn, turn)
  }

  markLost({ slot, turn }: TableEntry): void {
    Atomics.store(this.#words, slot * this.#slotWords + WORD.lostTurn, turn)
  }

  isLost(slot: number): boolean {
    return Atomics.load(this.#words, slot * this.#slotWords + WORD.lostTurn) === this.turn(slot)
  }

  #read(slot: number): [id: string, token: string] {
    const begin = slot * this.shared.slotBytes + HEAD_BYTES
    const length = this.#words[slot * this.#slotWords + WORD.length] ?? 0
    const text = this.#text.toString('utf8', begin, begin + length)
    const at = text.lastIndexOf(SEPARATOR)
    return [text.slice(0, at), text.slice(at + 1)]
  }
}
