#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/verb.h"
#include "argosy/ps/wire.h"

namespace argosy::ps {

/// The keys of a worker's latest pulls, kept until their gradients are pushed.
class KeptLists {
 public:
  struct List {
    uint64_t number = 0;           // of the exchange that pulled them; 0: none
    uint64_t step = 0;             // of the server at that time
    std::vector<uint64_t> counts;  // keys, by key set
    std::vector<Ticket> tickets;   // by table, then by part
  };
  /// Keeps one more: the exchange that pushes the oldest list also pulls a new one.
  explicit KeptLists(size_t lists) : ring_(lists + 1) {}

  /// Null if it is no longer kept, or lies in the slot that the pull of `pusher` takes.
  List* find(uint64_t number, uint64_t pusher) {
    List& list = ring_[number % ring_.size()];
    const bool makes_way = number % ring_.size() == pusher % ring_.size();
    return list.number == number && number > 0 && !makes_way ? &list : nullptr;
  }
  /// Starts a new list in the slot of an old one, reusing the memory of its tickets.
  List& renew(uint64_t number) {
    List& list = ring_[number % ring_.size()];
    list.number = number;
    return list;
  }

 private:
  std::vector<List> ring_;
};

/// What each worker has sent and what was applied, so that a retry is answered but never applied
/// again. A worker numbers its exchanges 1, 2, ... Invariants:
///   1. applied <= received <= applied + kMaxUnderWay: exchanges are taken in order, without gaps.
///   2. Nothing up to `applied` will be applied again. It was applied once, by this process or an
///      earlier one at the same address (whose work after its last save is lost), or never reached
///      this server before its worker was restarted.
///   3. The answer to the last verb is kept until the next verb; verbs come one at a time.
/// Thread safety: none.
class Ledger {
 public:
  /// Most exchanges of one worker in progress; the rest is ignored until it is sent again.
  static constexpr uint64_t kMaxUnderWay = 256;

  struct Entry {
    uint64_t incarnation = 0;
    uint32_t restarts = 0;
    uint64_t received = 0, applied = 0;
    Trained trained;      // with the last exchange that was taken
    Trained done;         // with the last one applied
    Trained before_last;  // without it
    std::shared_ptr<KeptLists> lists;
    struct Asked {
      uint64_t id = 0;
      std::string verb;
      bool meets = false;  // it waits for other workers
      Env::Time since;
      SharedResult answer;  // null: not yet
    };
    Asked asked;
  };

  explicit Ledger(uint32_t workers) : entries_(workers) {}
  Entry& operator[](uint32_t worker) { return entries_[worker]; }
  const Entry& operator[](uint32_t worker) const { return entries_[worker]; }

  /// The first hello of this incarnation of a worker.
  void begin_anew(uint32_t worker, const Hello& hello);

  enum class Verdict : uint8_t {
    apply,   // the next one
    answer,  // already applied: only answer its pulls
    ignore,  // in progress (its answer follows) or out of order (it will be sent again)
  };
  Verdict judge(uint32_t worker, uint64_t sequence) const;
  /// Takes the next exchange, which will be applied.
  void taken(uint32_t worker, const Trained& trained);
  void applied(uint32_t worker, uint64_t sequence, const Trained& trained = {});
  /// Undoes the last taken(): the exchange was held for a step and its process is gone.
  void forget_last(uint32_t worker);

  enum class VerbVerdict : uint8_t { perform, answer, ignore };
  VerbVerdict take_verb(uint32_t worker, uint64_t id, const std::string& verb, Env::Time now);
  /// False if the asking process is gone or has since asked something else.
  bool answered(const Asker& asker, SharedResult answer);

  /// Takes over the mark of a save, for workers that have not said hello yet. They are told that
  /// exchanges after it are lost.
  void go_on_from(const ServerMark& mark);
  /// Takes over the mark of a journal: workers send again what comes after it.
  void recover(const ServerMark& mark);
  /// Of what was taken.
  ServerMark mark(uint64_t step) const;
  /// Of what was applied.
  ServerMark applied_mark(uint64_t step) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace argosy::ps
