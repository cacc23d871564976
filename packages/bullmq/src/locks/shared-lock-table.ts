// The locks that are held, in memory that threads share: one thread writes them down, another reads them by itself.
//
// No message would do: a task that is told of by message is unknown for as long as the loop that should send it is blocked.

/** Of a slot's numbers, in 32-bit words from its begin; the text of id and token follows them. */
const WORD = { turn: 0, length: 1, since: 2, renewedTurn: 3, renewedAt: 4, lostTurn: 5 } as const
const HEAD_BYTES = 32
/** An id of a Bullpen task and BullMQ's token take about a hundred. */
const USUAL_TEXT_BYTES = 480
/** UTF-8 takes no more for one unit of a string. */
const MOST_BYTES_A_UNIT = 3
const SEPARATOR = '\n'

/** What crosses to the other thread. */
export interface SharedTable {
  readonly memory: SharedArrayBuffer
  readonly slotBytes: number
}

/** One slot as a reader found it. A slot that is given out again has another turn. */
export interface HeldLock {
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

  /** With room in each slot for an id and token of this many UTF-16 units, and for those of usual length. */
  static of(slots: number, units = 0): SharedLockTable {
    const text = Math.max(USUAL_TEXT_BYTES, Math.ceil((units * MOST_BYTES_A_UNIT) / HEAD_BYTES) * HEAD_BYTES)
    const slotBytes = HEAD_BYTES + text
    return new SharedLockTable({ memory: new SharedArrayBuffer(slots * slotBytes), slotBytes })
  }

  fits(units: number): boolean {
    return units * MOST_BYTES_A_UNIT <= this.shared.slotBytes - HEAD_BYTES
  }

  /** Writes a lock into a free slot: readers see it when this returns. `since`: when it was surely not yet older. */
  hold(slot: number, id: string, token: string, since: number): void {
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

  /** Odd while it is held. */
  turn(slot: number): number {
    return Atomics.load(this.#words, slot * this.#slotWords + WORD.turn)
  }

  isHeld(slot: number): boolean {
    return (this.turn(slot) & 1) === 1
  }

  /** Undefined when it is free, or changes hands while it is read. */
  read(slot: number): HeldLock | undefined {
    const turn = this.turn(slot)
    if ((turn & 1) === 0) return undefined
    const [id, token] = this.#read(slot)
    return this.turn(slot) === turn ? { slot, turn, id, token } : undefined
  }

  /** The lock is surely no older than this: its taking, or the newest renewal, by when that was sent. */
  since(slot: number): number {
    const at = slot * this.#slotWords
    const renewed = Atomics.load(this.#words, at + WORD.renewedTurn) === this.turn(slot)
    return Atomics.load(this.#words, at + (renewed ? WORD.renewedAt : WORD.since))
  }

  renewed({ slot, turn }: HeldLock, sentAt: number): void {
    const at = slot * this.#slotWords
    Atomics.store(this.#words, at + WORD.renewedAt, sentAt)
    Atomics.store(this.#words, at + WORD.renewedTurn, turn)
  }

  lost({ slot, turn }: HeldLock): void {
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
