// The locks that a consumer has, in memory that two threads share: the main thread writes them, the renewal thread reads them.
//
// Messages between the threads would not do: a blocked event loop can't send one, so that the lock of a task that was fetched
// just before would not be renewed.
//
// Each slot has a turn counter. It is odd while the slot is taken, and grows with each change of hands, so a reader that sees
// the same odd turn before and after reading has read one lock. Renewal and loss are stored with the turn that they are about.

/** The offsets of a slot's numbers, in 32-bit words. The text of id and token follows them. */
const WORD = { turn: 0, length: 1, since: 2, renewedTurn: 3, renewedAt: 4, lostTurn: 5 } as const
const HEAD_BYTES = 32
/** The id of a Bullpen task and BullMQ's token take about a hundred bytes. */
const USUAL_TEXT_BYTES = 480
/** The most bytes that UTF-8 takes for one UTF-16 unit. */
const MAX_BYTES_PER_UNIT = 3
const SEPARATOR = '\n'

/** What is sent to the other thread. */
export interface SharedTable {
  readonly memory: SharedArrayBuffer
  readonly slotBytes: number
}

/** One taken slot as a reader found it. When the slot is used for another lock, it has another turn. */
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

  /** `units`: the UTF-16 units of id and token that a slot must have room for; at least the usual length. */
  static of(slots: number, units = 0): SharedLockTable {
    const text = Math.max(USUAL_TEXT_BYTES, Math.ceil((units * MAX_BYTES_PER_UNIT) / HEAD_BYTES) * HEAD_BYTES)
    const slotBytes = HEAD_BYTES + text
    return new SharedLockTable({ memory: new SharedArrayBuffer(slots * slotBytes), slotBytes })
  }

  fits(units: number): boolean {
    return units * MAX_BYTES_PER_UNIT <= this.shared.slotBytes - HEAD_BYTES
  }

  /** Writes a lock into a free slot. Readers see it when this returns. `since`: a lower bound of when the lock was taken. */
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

  /** Odd while the slot is taken. */
  turn(slot: number): number {
    return Atomics.load(this.#words, slot * this.#slotWords + WORD.turn)
  }

  isTaken(slot: number): boolean {
    return (this.turn(slot) & 1) === 1
  }

  /** Undefined if the slot is free, or changes hands while it is read. */
  read(slot: number): TableEntry | undefined {
    const turn = this.turn(slot)
    if ((turn & 1) === 0) return undefined
    const [id, token] = this.#read(slot)
    return this.turn(slot) === turn ? { slot, turn, id, token } : undefined
  }

  /** A lower bound of when the lock was taken or last renewed. */
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
